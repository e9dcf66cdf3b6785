import { readFile, readdir, readlink } from 'node:fs/promises';

/** What a process's descriptors are for: how many connect it with whom, and how many are no TCP sockets. */
export type Descriptors = Readonly<Record<'clients' | 'others' | 'redis' | 'service', number>>;

export interface Ports {
  readonly service: number;
  readonly redis: number | undefined;
}

/** Established, by proc(5)'s table of TCP sockets; all others are on their way out, or listen. */
const ESTABLISHED = '01';

export async function descriptorsOf(pid: number, { service, redis }: Ports): Promise<Descriptors> {
  const [peers, links] = await Promise.all([peersByInode(pid), linksOf(pid)]);
  const counts = { clients: 0, others: 0, redis: 0, service: 0 };
  for (const link of links) {
    const peer = peers.get(/^socket:\[(\d+)\]$/.exec(link)?.[1] ?? '');
    if (peer === undefined) counts.others += 1;
    else if (peer === service) counts.service += 1;
    else if (peer === redis) counts.redis += 1;
    else counts.clients += 1;
  }
  return counts;
}

async function linksOf(pid: number): Promise<string[]> {
  const names = await readdir(`/proc/${pid}/fd`);
  // Between the two looks, some are closed.
  return Promise.all(names.map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => '')));
}

/** The other end's port of each established connection. */
async function peersByInode(pid: number): Promise<Map<string, number>> {
  const tables = await Promise.all(['tcp', 'tcp6'].map((name) => readFile(`/proc/${pid}/net/${name}`, 'utf8')));
  const peers = new Map<string, number>();
  for (const row of tables.flatMap((table) => table.split('\n').slice(1))) {
    const [, , remote = '', state, , , , , , inode = ''] = row.trim().split(/\s+/);
    if (state === ESTABLISHED) peers.set(inode, Number.parseInt(remote.split(':')[1] ?? '', 16));
  }
  return peers;
}
