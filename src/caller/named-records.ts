import type { Records } from '../store/records.ts';
import type { CallerNames } from '../throttle/caller-names.ts';

/**
 * Records for those who go by what is plain: a name is an API key, a space and a key of its caller's, and an input is what was
 * submitted. Of these the store gets hashes alone, and no hash can be made without the secret.
 *
 * Each step makes them anew. Replicas that find Redis empty agree on another secret: what was begun under the old one is
 * settled under the new one, where whoever repeats it will look.
 */
export function createNamedRecords(records: Records, nameOf: CallerNames): Records {
  return {
    async find(name, input) {
      const hashed = await hashesOf(name, input);
      return records.find(hashed.name, hashed.input);
    },
    async begin(name, attempt) {
      const hashed = await hashesOf(name, attempt.input);
      return records.begin(hashed.name, { ...attempt, input: hashed.input });
    },
    async settle(name, attempt, outcome) {
      const hashed = await hashesOf(name, attempt.input);
      await records.settle(hashed.name, { ...attempt, input: hashed.input }, outcome);
    },
    async release(name, attempt) {
      // It goes by the attempt's id.
      await records.release(await hashOf(name), { ...attempt, input: '' });
    },
    close: () => records.close(),
  };

  async function hashOf(name: string): Promise<string> {
    // API keys have no spaces.
    const apiKey = name.slice(0, name.indexOf(' '));
    const [caller, own] = await Promise.all([nameOf(apiKey), nameOf(name)]);
    return `${caller}:${own}`;
  }

  async function hashesOf(plainName: string, plainInput: string): Promise<{ name: string; input: string }> {
    const [name, input] = await Promise.all([hashOf(plainName), nameOf(`${plainName} ${plainInput}`)]);
    return { name, input };
  }
}
