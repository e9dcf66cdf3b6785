/** The process that attacks, so that the good client has processor time too. */
import { once } from 'node:events';
import { ATTACKS } from './attacks.ts';

const [, , origin = '', attacks = '{}'] = process.argv;
const over = new AbortController();
process.once('disconnect', () => over.abort());
process.send?.('attacking');
await Promise.race([
  once(process, 'disconnect'),
  ...Object.entries(JSON.parse(attacks) as Record<keyof typeof ATTACKS, number>).map(([name, connections]) =>
    ATTACKS[name as keyof typeof ATTACKS](origin, connections, over.signal),
  ),
]);
process.exit(0);
