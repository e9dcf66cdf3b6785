/**
 * Sets how many frames an error notes as it is made; none where nobody is shown them and there may be thousands, since to note
 * them takes longer than all the rest. Where a process has frozen the limit, it stays as it is.
 *
 * @returns what it was, to be set again.
 */
export function setStackTraceLimit(limit: unknown): unknown {
  const { stackTraceLimit } = Error;
  Reflect.set(Error, 'stackTraceLimit', limit);
  return stackTraceLimit;
}
