/** Series with a sample each minute, from minute 0, and when they make an alert fire. */
export type Firing = {
  readonly alert: string;
  /** The values of each series, as promtool writes them: `0+1x9` counts up, nine times by one. */
  readonly series: Readonly<Record<string, string>>;
  /** The labels that the alert has from its series. */
  readonly on?: Readonly<Record<string, string>>;
} & (
  | {
      readonly firesAtMinute: number;
      /** The last minute at which it fires, of which the next one is silent. Default: the test ends where it begins to fire. */
      readonly firesToMinute?: number;
      readonly silentUntilMinute?: never;
    }
  | { readonly firesAtMinute?: never; readonly silentUntilMinute: number }
);

const calls = (status: string, reason: string) =>
  `petql_upstream_calls_total{operation="listPets",status="${status}",reason="${reason}"}`;
const operations = (outcome: string) => `petql_operations_total{type="query",outcome="${outcome}"}`;

/** Each alert, in the order of alerts.yaml, with the series that make it fire, and those that must not. */
export const FIRING: readonly Firing[] = [
  {
    alert: 'PetqlRateLimited',
    series: { [calls('429', 'rate-limited')]: '0x4 1x15', petql_paused_keys: '0x20' },
    firesAtMinute: 5,
    firesToMinute: 9,
  },
  {
    alert: 'PetqlRateLimited',
    // The key is paused for half an hour, and no call meets a 429 meanwhile.
    series: { [calls('429', 'rate-limited')]: '0x4 1x40', petql_paused_keys: '0x4 1x29 0x10' },
    firesAtMinute: 5,
    firesToMinute: 34,
  },
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
  ...[
    // Each has an alert of its own, and says nothing about the plan.
    { petql_paused_keys: '0x4 1x14 0x40', 'petql_closed_operations{operation="api"}': '0x60' },
    { petql_paused_keys: '0x60', 'petql_closed_operations{operation="api"}': '0x4 1x29 0x30' },
    { 'petql_redis_up{instance="a"}': '1x60', 'petql_redis_up{instance="b"}': '1x4 0x29 1x30' },
  ].map((cause): Firing => ({
    alert: 'PetqlQuotaExhausted',
    series: {
      ...cause,
      [operations('OK')]: '0+9x4 36+1x14 50+9x40',
      [operations('RATE_LIMITED')]: '0x4 0+8x14 112x40',
      'petql_stale_operations_total{reason="QUOTA_EXHAUSTED"}': '0x60',
    },
    silentUntilMinute: 55,
  })),
  { alert: 'PetqlKeyPaused', series: { petql_paused_keys: '0x4 1x20' }, firesAtMinute: 15 },
  { alert: 'PetqlKeyForbidden', series: { [calls('403', 'forbidden')]: '0x4 1x5' }, firesAtMinute: 5 },
  {
    alert: 'PetqlKeyForbidden',
    // A ban of an hour: one call of it, and errors all the time.
    series: { [calls('403', 'forbidden')]: '0x4 1x60', [operations('FORBIDDEN')]: '0x4 0+9x39 351x20' },
    firesAtMinute: 5,
    firesToMinute: 48,
  },
  // A firewall's 403 is no word about the key.
  { alert: 'PetqlKeyForbidden', series: { [calls('403', 'failed')]: '0+1x20' }, silentUntilMinute: 20 },
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
    // Away for 40 minutes: petql backs off to four calls an hour, after ten minutes without cached data.
    series: {
      [operations('OK')]: '0+60x14 840x30 840+60x20',
      [operations('DOWNSTREAM_SERVICE_ERROR')]: '0x14 0+60x29 1740x20',
      'petql_stale_operations_total{reason="UPSTREAM_FAILED"}': '0x4 0+60x10 600x50',
      [calls('2xx', 'ok')]: '0+9x4 36x40 36+9x20',
      [calls('503', 'failed')]: '0x4 9 12 14 15 16x4 17x14 18x14 19x24',
    },
    firesAtMinute: 10,
    firesToMinute: 48,
  },
  {
    alert: 'PetqlUpstreamFailing',
    // Creates alone, which no cache hides.
    series: { [operations('GATEWAY_TIMEOUT')]: '0x4 0+9x35 315x20', [operations('OK')]: '0+20x65' },
    firesAtMinute: 12,
    firesToMinute: 43,
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
  {
    alert: 'PetqlClosed',
    series: {
      'petql_closed_operations{operation="api",instance="a"}': '0x40',
      'petql_closed_operations{operation="getPet",instance="a"}': '0x4 12x30 0x10',
      'petql_closed_operations{operation="getPet",instance="b"}': '0x40',
      // Within a try it is over.
      'petql_closed_operations{operation="soldPets",instance="a"}': '0x9 1 0x30',
    },
    on: { operation: 'getPet' },
    firesAtMinute: 7,
    firesToMinute: 35,
  },
  {
    alert: 'PetqlClosed',
    series: { 'petql_closed_operations{operation="api"}': '0x4 1x40 0x10' },
    on: { operation: 'api' },
    firesAtMinute: 7,
    firesToMinute: 45,
  },
  { alert: 'PetqlBug', series: { [operations('INTERNAL_SERVER_ERROR')]: '0x4 1x5' }, firesAtMinute: 5 },
];
