/** One call as the sandbox received it. */
export interface SandboxCall {
  /** Milliseconds since the Unix epoch. */
  readonly atMs: number;
  readonly method: string;
  /** Below `/v1`, with its query. */
  readonly path: string;
  readonly key: string | undefined;
  /** Empty without a valid key. */
  readonly body: string;
  /** The status of the response, which may arrive late or not at all. */
  readonly status: number;
}
