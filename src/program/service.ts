/** A program that serves until a signal stops it. */
export interface Service {
  readonly banner: string;
  readonly stop: (signal: NodeJS.Signals) => Promise<void>;
}

/** Returns the message of an error for the terminal, where a carriage return in a value would hide what stands before it. */
export function oneLine(error: unknown): string {
  const message = String(error instanceof Error ? error.message : error).replaceAll('\n', ' ');
  // oxlint-disable-next-line no-control-regex -- these are what it shows
  return message.replaceAll(/[\0-\x1f]/g, (character) => JSON.stringify(character).slice(1, -1));
}
