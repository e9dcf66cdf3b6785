import { fails } from '../../support/pet-api/fault.ts';
import { rowOf } from '../../support/tally.ts';
import type { Row } from '../../support/tally.ts';
import { run } from './laboratory.ts';
import type { Run, Scene } from './laboratory.ts';
import { MIXES } from './mixes.ts';
import type { MixName } from './mixes.ts';
import { MINUTE_MS, SECOND_MS, letMadeUpKeys, list } from './trigger.ts';

/** The calls that an API gets while it is down, and when reads come back. */
export interface OutageFigures {
  /** Without those in flight at its beginning. */
  readonly calls: number;
  /** With made-up keys, once petql may know that it is down. */
  readonly strangersCalls: number;
  /** After the end; undefined where none came back in the time that the bar allows. */
  readonly backMs: number | undefined;
}

interface Outage {
  readonly minutes: number;
  readonly maxCalls: number;
  readonly mixes: readonly MixName[];
}

const STARTS_MS = MINUTE_MS;
/** By then petql may know it. */
const KNOWN_MS = 10 * SECOND_MS;
const STRANGERS_COME_MS = 30 * SECOND_MS;
const MAX_BACK_MS = 30 * SECOND_MS;

export const OUTAGES: readonly [Outage, ...Outage[]] = [
  { minutes: 3, maxCalls: 15, mixes: ['page', 'four-keys', 'forty-keys', 'replicas'] },
  { minutes: 30, maxCalls: 45, mixes: ['page', 'four-keys', 'forty-keys', 'replicas'] },
  { minutes: 24 * 60, maxCalls: 150, mixes: ['slow-page'] },
];

/** An API that is down gets few calls and none of strangers, and reads come back within a tenth of the outage and 30 s. */
export async function judgeOutage({ minutes, maxCalls, mixes }: Outage): Promise<Row> {
  const problems: string[] = [];
  const measured: string[] = [];
  for (const mix of mixes) {
    const figures = await measureOutage(mix, minutes);
    const { calls, strangersCalls, backMs } = figures;
    measured.push(`${mix}: ${calls} calls, ${backMs === undefined ? 'not back' : `back after ${backMs / 1_000} s`}`);
    if (calls > maxCalls) problems.push(`${mix}: ${calls} calls`);
    if (strangersCalls > 0) problems.push(`${mix}: ${strangersCalls} calls of made-up keys`);
    if (backMs === undefined) problems.push(`${mix}: no fresh read ${maxBackMs(minutes) / 1_000} s after the end`);
  }
  const promise = `an API that is down for ${minutes} min gets at most ${maxCalls} calls, and serves reads soon after it`;
  return rowOf({ promise, looked: mixes.length, problems, measured: measured.join('; ') });
}

export async function measureOutage(mix: MixName, outageMinutes: number): Promise<OutageFigures> {
  const endsMs = STARTS_MS + outageMinutes * MINUTE_MS;
  const minutes = Math.ceil((endsMs + maxBackMs(outageMinutes)) / MINUTE_MS);
  const ended = await run(MIXES[mix], { minutes, begin: (scene) => fail(scene, endsMs) });
  const back = ended.reads.find(({ endedAtMs, result }) => result === 'fresh' && endedAtMs >= endsMs);
  const backMs = (back?.endedAtMs ?? Infinity) - endsMs;
  return { ...callsIn(ended, endsMs), backMs: backMs <= maxBackMs(outageMinutes) ? backMs : undefined };
}

function maxBackMs(outageMinutes: number): number {
  return (outageMinutes * MINUTE_MS) / 10 + MAX_BACK_MS;
}

function fail(scene: Scene, endsMs: number): void {
  scene.fail([STARTS_MS, endsMs], fails());
  const knownMs = STARTS_MS + KNOWN_MS;
  letMadeUpKeys(scene, 200, [knownMs, knownMs + STRANGERS_COME_MS], (key) => list(scene, { key }));
}

function callsIn({ log, startMs }: Run, endsMs: number): Pick<OutageFigures, 'calls' | 'strangersCalls'> {
  const within = log.filter(({ atMs }) => atMs >= startMs + STARTS_MS && atMs < startMs + endsMs);
  const knownMs = Math.min(...within.map(({ answeredAtMs = Infinity }) => answeredAtMs));
  const isStranger = ({ key }: { readonly key: string }) => key.startsWith('made-up');
  return {
    calls: within.filter((call) => !isStranger(call) && call.sentAtMs > knownMs).length,
    strangersCalls: within.filter(isStranger).length,
  };
}
