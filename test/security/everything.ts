import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';

/** All that came out of petql somewhere, by the place where it was found. */
export interface Everything {
  readonly add: (place: string, text: Buffer | string) => void;
  /** The places that hold a secret in any of the ways in which one could be written, and which way it was. */
  readonly found: (secrets: Readonly<Record<string, string>>) => string[];
  readonly places: readonly string[];
}

export function createEverything(): Everything {
  const texts: { place: string; text: string }[] = [];
  return {
    add: (place, text) => {
      texts.push({ place, text: text.toString('latin1') });
    },
    found: (secrets) =>
      Object.entries(secrets).flatMap(([name, secret]) =>
        Object.entries(waysToWrite(secret)).flatMap(([way, written]) =>
          texts.filter(({ text }) => text.includes(written)).map(({ place }) => `${place}: ${name}, ${way}`),
        ),
      ),
    get places() {
      return texts.map(({ place }) => place);
    },
  };
}

function waysToWrite(secret: string): Record<string, string> {
  const sha256 = createHash('sha256').update(secret);
  const digest = sha256.digest();
  // Without what depends on the bytes before and after.
  const base64 = (text: string) => Buffer.from(text).toString('base64').replace(/=+$/, '').slice(0, -2);
  return {
    'as it is': secret,
    'in base64': base64(secret),
    'in base64 behind Bearer': base64(`Bearer ${secret}`),
    'in hex': Buffer.from(secret).toString('hex'),
    'percent-encoded': encodeURIComponent(secret),
    'its bare hash in hex': digest.toString('hex'),
    'its bare hash in base64': digest.toString('base64').slice(0, 32),
    'its bare hash in base64url': digest.toString('base64url').slice(0, 32),
  };
}

/** Every key of a Redis, and what each holds, in every way of reading it. */
export async function readRedis(url: string, everything: Everything): Promise<void> {
  const { port } = new URL(url);
  const listed = await speak(Number(port), ['KEYS', '*']);
  everything.add('Redis KEYS', listed);
  const keys = listed.split('\r\n').filter((line) => line.startsWith('petql:'));
  for (const key of keys) {
    for (const words of [
      ['DUMP', key],
      ['GET', key],
      ['HGETALL', key],
      ['ZRANGE', key, '0', '-1'],
    ]) {
      everything.add(`Redis ${words.join(' ')}`, await speak(Number(port), words));
    }
  }
}

/** The files that SQLite writes. */
export async function readStateFile(path: string, everything: Everything): Promise<void> {
  for (const file of [path, `${path}-wal`, `${path}-journal`]) {
    const bytes = await readFile(file).catch(() => undefined);
    if (bytes) everything.add(file.replace(path, 'state file'), bytes);
  }
}

/** One command, and all of its answer: the server closes the connection after it. */
function speak(port: number, words: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const encode = (command: readonly string[]) =>
      `*${command.length}\r\n${command.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`;
    const chunks: Buffer[] = [];
    connect(port, '127.0.0.1')
      .on('data', (data) => chunks.push(data))
      .on('end', () => resolve(Buffer.concat(chunks).toString('latin1')))
      .on('error', reject)
      .write(encode(words) + encode(['QUIT']));
  });
}
