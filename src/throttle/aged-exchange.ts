import { GUARD_MS } from './ledger-state.ts';
import type { Exchange, Memory, Report } from './ledger.ts';

type Told = Extract<Report, { kind: 'answered' | 'refused' }>;

/** The same exchange where it is sent again so many milliseconds later: what it says lies as far ahead as it does by now. */
export function agedExchange(exchange: Exchange, ageMs: number): Exchange {
  return { ...exchange, reports: exchange.reports.flatMap((report) => agedReports(report, ageMs)) };
}

function agedReports(report: Report, ageMs: number): readonly Report[] {
  const aged = agedReport(report, ageMs);
  const foundNothing = 'grant' in report && 'grant' in aged && report.grant.probe && !aged.grant.probe;
  // Somebody else may find it out: nobody waits for this one any more.
  return foundNothing ? [aged, { kind: 'lost', grant: report.grant }] : [aged];
}

function agedReport(report: Report, ageMs: number): Report {
  switch (report.kind) {
    case 'answered':
      return agedReadings(report, ageMs);
    case 'refused': {
      const { refusal } = report;
      const retryAfterMs = Math.max(0, refusal.retryAfterMs - ageMs);
      return { ...agedReadings(report, ageMs), refusal: { ...refusal, retryAfterMs } };
    }
    case 'adopted':
      return { kind: 'adopted', ...agedMemory(report, ageMs) };
    default:
      return report;
  }
}

/** Of a window that is over an answer says nothing; and what was a probe has found out nothing of the one that followed. */
function agedReadings<T extends Told>(report: T, ageMs: number): T {
  const readings = report.readings
    .map((reading) => ({ ...reading, resetInMs: reading.resetInMs - ageMs, agoMs: ageMs }))
    .filter(({ resetInMs }) => resetInMs > -GUARD_MS);
  const grant = readings.length < report.readings.length ? { ...report.grant, probe: false } : report.grant;
  return { ...report, grant, readings };
}

function agedMemory({ dayReset, minuteTold, dayFreeInMs, awayForMs, ...memory }: Memory, ageMs: number): Memory {
  const dayIsOver = dayReset !== undefined && dayReset.inMs <= ageMs;
  return {
    ...memory,
    ...(dayReset && !dayIsOver ? { dayReset: { ...dayReset, inMs: dayReset.inMs - ageMs } } : {}),
    ...(minuteTold && minuteTold.inMs > ageMs ? { minuteTold: { ...minuteTold, inMs: minuteTold.inMs - ageMs } } : {}),
    ...(dayFreeInMs === undefined ? {} : { dayFreeInMs: Math.max(0, dayFreeInMs - ageMs) }),
    ...(awayForMs === undefined ? {} : { awayForMs: awayForMs + ageMs }),
    dayUsed: dayIsOver ? 0 : memory.dayUsed,
    pausedForMs: Math.max(0, memory.pausedForMs - ageMs),
  };
}
