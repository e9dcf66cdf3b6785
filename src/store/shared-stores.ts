import { realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { SettingError } from '../common/errors.ts';
import type { Log } from '../common/log.ts';
import { version } from '../common/version.ts';

/** A store of one process and what is built on it. */
export interface Shareable<Options> {
  /** Lets another gateway use it, under its options. */
  readonly admit: (options: Options) => void;
  readonly close: () => Promise<void>;
  /** Closes the store at once. */
  readonly dispose: () => void;
}

interface Shared {
  /** The pet API, the key secret and the version of all gateways that share it. */
  readonly owner: string;
  readonly stores: Shareable<unknown>;
  gateways: number;
}

/**
 * petql's only global state. Next.js, hot reload and bundles evaluate a module several times in a process, each time with classes of
 * its own, and the plan of an API key is one.
 */
const ALL = Symbol.for('petql.stores');
const { [ALL]: all = new Map<string, Shared>() } = globalThis as { [ALL]?: Map<string, Shared> };
Object.assign(globalThis, { [ALL]: all });

interface Joining {
  /** The name of the pet API under the key secret. */
  readonly ownerName: string;
  /** Default: in memory. */
  readonly stateFile?: string | undefined;
  /** Gets a line where another gateway has them already. */
  readonly log: Log;
}

/**
 * Returns the stores that the other gateways of this process for the same pet API, key secret and state file use, or opens them.
 * They are closed with the last gateway.
 *
 * @throws SettingError when a gateway for another pet API, or with another key secret, uses the state file.
 */
export function joinStores<Options extends Joining, Stores extends Shareable<Options>>(
  options: Options,
  open: () => Stores,
): Stores {
  const { ownerName, stateFile, log } = options;
  const owner = `${version} ${ownerName}`;
  const place = stateFile === undefined ? owner : realPath(stateFile);

  const found = all.get(place);
  if (found && found.owner !== owner) throw new SettingError('stateFile', (name) => `${name}: ${OTHER_OWNER}`);
  const stores = (found?.stores as Stores | undefined) ?? open();
  const shared = found ?? { owner, stores: stores as Shareable<unknown>, gateways: 0 };
  all.set(place, shared);
  shared.gateways += 1;
  if (found) {
    stores.admit(options);
    log.info({ gateways: shared.gateways }, 'shares the count of each API key with another gateway of this process');
  }

  let isOpen = true;
  return {
    ...stores,
    close: async () => void (leave() && (await stores.close())),
    dispose: () => void (leave() && stores.dispose()),
  };

  /** Ends the use of the stores. Returns whether it was the last one. */
  function leave(): boolean {
    if (!isOpen) return false;
    isOpen = false;
    shared.gateways -= 1;
    if (shared.gateways === 0) all.delete(place);
    return shared.gateways === 0;
  }
}

/** Returns one path for all links to a file, which need not exist yet. */
function realPath(file: string): string {
  for (const found of [() => realpathSync(file), () => join(realpathSync(dirname(file)), basename(file))]) {
    try {
      return found();
    } catch {
      // Opening the file says what is wrong with it.
    }
  }
  return resolve(file);
}

const OTHER_OWNER =
  'another gateway of this process uses the file, for another pet API or with another key secret. Name another file.';
