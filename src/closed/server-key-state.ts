import type { Log } from '../common/log.ts';

/** Whether the upstream accepts the key of the server, which all clients use: where it does not, an operator has to act. */
export class ServerKeyState {
  readonly #apiKey: string | undefined;
  readonly #log: Log;
  #isRejected = false;

  /** @param apiKey undefined where clients bring their own keys: anybody can make those up. */
  constructor(apiKey: string | undefined, log: Log) {
    this.#apiKey = apiKey;
    this.#log = log;
  }

  get isRejected(): boolean {
    return this.#isRejected;
  }

  /** Records a 401 that is no ban. */
  reject(apiKey: string): void {
    if (apiKey !== this.#apiKey || this.#isRejected) return;
    this.#isRejected = true;
    this.#log.warn({ status: 401 }, 'the pet API does not accept the key of the server: check PET_API_KEY (petApiKey)');
  }

  /** Records a list that is forbidden to the key. The log names refused operations of each key. */
  forbid(apiKey: string): void {
    this.#isRejected ||= apiKey === this.#apiKey;
  }

  accept(apiKey: string): void {
    if (apiKey !== this.#apiKey || !this.#isRejected) return;
    this.#isRejected = false;
    this.#log.info({}, 'the pet API accepts the key of the server again');
  }
}
