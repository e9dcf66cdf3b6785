import type { CheckedOptions } from './settings.ts';

export type Dispatcher = NonNullable<CheckedOptions['dispatcher']>;
type Handler = Parameters<Dispatcher['dispatch']>[1];

interface GivenResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A call to a dispatcher of undici's that has no sockets. Its handler may abort it. */
export class DispatchedCall {
  readonly #handler: Handler;
  readonly #controller;
  #isOver = false;

  constructor(handler: Handler) {
    this.#handler = handler;
    this.#controller = {
      aborted: false,
      paused: false,
      reason: null as Error | null,
      abort: (reason: Error) => this.#abort(reason),
      pause() {},
      resume() {},
    };
    handler.onRequestStart?.(this.#controller, {});
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Gives the response to the handler, unless it has aborted. */
  respond({ status, headers, body }: GivenResponse): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#handler.onResponseStart?.(this.#controller, status, { ...headers });
    this.#handler.onResponseData?.(this.#controller, Buffer.from(body));
    this.#handler.onResponseEnd?.(this.#controller, {});
  }

  /** Lets the connection break before a response. */
  break(error: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#handler.onResponseError?.(this.#controller, error);
  }

  #abort(reason: Error): void {
    Object.assign(this.#controller, { aborted: true, reason });
    this.break(reason);
  }
}
