/** Settles after so many milliseconds. That of node:timers/promises goes by a clock that tests cannot set. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, Math.ceil(ms));
  });
}
