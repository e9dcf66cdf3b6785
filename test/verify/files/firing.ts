/** Series with a sample each minute, from minute 0, and when they make an alert fire. */
export type Firing = {
  readonly alert: string;
  /** The values of each series, as promtool writes them: `0+1x9` counts up, nine times by one. */
  readonly series: Readonly<Record<string, string>>;
  /** The labels that the alert has from its series. */
  readonly on?: Readonly<Record<string, string>>;
} & (
  | { readonly firesAtMinute: number; readonly silentUntilMinute?: never }
  | { readonly firesAtMinute?: never; readonly silentUntilMinute: number }
);

const calls = (status: string, reason: string) =>
  `petql_upstream_calls_total{operation="listPets",status="${status}",reason="${reason}"}`;
const operations = (outcome: string) => `petql_operations_total{type="query",outcome="${outcome}"}`;

/** Each alert, in the order of alerts.yaml, with the series that make it fire, and those that must not. */
export const FIRING: readonly Firing[] = [
  { alert: 'PetqlRateLimited', series: { [calls('429', 'rate-limited')]: '0x4 1x5' }, firesAtMinute: 5 },
  {
    alert: 'PetqlQuotaExhausted',
    series: {
      [operations('OK')]: '0+90x40',
      [operations('RATE_LIMITED')]: '0x4 0+10x40',
      'petql_stale_operations_total{reason="QUOTA_EXHAUSTED"}': '0x4 0+10x40',
    },
    firesAtMinute: 22,
  },
  {
    alert: 'PetqlQuotaExhausted',
    // A healthy key that uses its day to the end.
    series: {
      [operations('OK')]: '0+90x40',
      [operations('RATE_LIMITED')]: '0+1x40',
      'petql_stale_operations_total{reason="QUOTA_EXHAUSTED"}': '0x40',
      'petql_stale_operations_total{reason="SAVING_QUOTA"}': '0+80x40',
      'petql_quota_used_share_max{plan="Free",window="DAY"}': '0.99x40',
    },
    silentUntilMinute: 40,
  },
  { alert: 'PetqlKeyPaused', series: { petql_paused_keys: '0x4 1x20' }, firesAtMinute: 15 },
  { alert: 'PetqlKeyForbidden', series: { [calls('403', 'forbidden')]: '0x4 1x5' }, firesAtMinute: 5 },
  {
    alert: 'PetqlKeyRejected',
    series: { [operations('OK')]: '0+9x4 36x20', [operations('UNAUTHENTICATED')]: '0x4 0+9x20' },
    firesAtMinute: 13,
  },
  {
    alert: 'PetqlDown',
    series: { 'up{job="petql",instance="a"}': '1x9', 'up{job="petql",instance="b"}': '1x4 0x5' },
    on: { instance: 'b' },
    firesAtMinute: 6,
  },
  { alert: 'PetqlDown', series: { 'up{job="other"}': '1x9' }, on: { job: 'petql' }, firesAtMinute: 1 },
  {
    alert: 'PetqlFewerReplicas',
    series: { 'petql_replicas{instance="a"}': '3x4 2x9', 'petql_replicas{instance="b"}': '3x4 2x9' },
    firesAtMinute: 10,
  },
  {
    alert: 'PetqlRedisUnavailable',
    series: { 'petql_redis_up{instance="a"}': '1x9', 'petql_redis_up{instance="b"}': '1x4 0x5' },
    on: { instance: 'b' },
    firesAtMinute: 6,
  },
  { alert: 'PetqlOutcomeUnknown', series: { [operations('OUTCOME_UNKNOWN')]: '0x4 1x5' }, firesAtMinute: 5 },
  {
    alert: 'PetqlUpstreamFailing',
    // All operations are OK by their cached data.
    series: { [operations('OK')]: '0+60x20', [calls('2xx', 'ok')]: '0+9x20', [calls('500', 'failed')]: '0x4 0+9x10' },
    firesAtMinute: 11,
  },
  {
    alert: 'PetqlUpstreamFailing',
    // One failure, and strangers with made-up keys.
    series: {
      [calls('2xx', 'ok')]: '0+9x20',
      [calls('none', 'timeout')]: '0x9 1x10',
      [calls('401', 'unauthenticated')]: '0+9x20',
    },
    silentUntilMinute: 20,
  },
  { alert: 'PetqlBug', series: { [operations('INTERNAL_SERVER_ERROR')]: '0x4 1x5' }, firesAtMinute: 5 },
];
