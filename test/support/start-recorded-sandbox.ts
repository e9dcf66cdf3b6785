import { startSandbox } from '../../src/sandbox/sandbox.ts';
import type { Sandbox, SandboxCall, SandboxOptions } from '../../src/sandbox/sandbox.ts';

/** A sandbox that keeps what it was sent. */
export interface RecordedSandbox extends Sandbox {
  /** Every call received, in their order. */
  readonly calls: readonly SandboxCall[];
}

export async function startRecordedSandbox(options: SandboxOptions = {}): Promise<RecordedSandbox> {
  const calls: SandboxCall[] = [];
  const sandbox = await startSandbox({ ...options, onCall: (call) => calls.push(call) });
  return { ...sandbox, calls };
}
