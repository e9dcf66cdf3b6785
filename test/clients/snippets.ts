import { readFile } from 'node:fs/promises';

interface Surroundings {
  /** In place of the origin in the snippet. */
  readonly origin: string;
  /** In place of its API key. Default: the snippet's. */
  readonly apiKey?: string;
  readonly print: (...values: unknown[]) => void;
}

/** Reads the pet of an id as the snippet's client does. Rejects or returns an error where it gives up. */
type ReadPet = (id: string) => Promise<{ readonly error?: unknown; readonly errors?: unknown }>;

/** How an app goes on behind each documented snippet, by what the snippet imports first. */
const READ_PET: Readonly<Record<string, string>> = {
  fetch: 'petql(READ, { id })',
  '@urql/core': "client.query(READ, { id }, { requestPolicy: 'network-only' }).toPromise()",
  '@apollo/client': 'client.query({ query: gql(READ), variables: { id } })',
};
const READ = "const READ = 'query ($id: ID!) { pet(id: $id) { id } }';";

/** The clients that README.md and schema/README.md document. */
export const CLIENTS = Object.keys(READ_PET);

/** Runs the snippet of a client as a module, and returns how the app reads on with it. */
export async function runSnippet(
  client: string,
  { origin, apiKey = 'demo-free', print }: Surroundings,
): Promise<ReadPet> {
  const snippets = (await Promise.all(['README.md', 'schema/README.md'].map(snippetsOf))).flat();
  const code = snippets.find((snippet) => (/from '(.+)'/.exec(snippet)?.[1] ?? 'fetch') === client);
  if (code === undefined || snippets.length !== CLIENTS.length)
    throw new Error(`there is no snippet for ${client} alone`);

  Object.assign(globalThis, { print });
  const resolved = code
    .replaceAll('http://127.0.0.1:4000', origin)
    .replaceAll('demo-free', apiKey)
    .replaceAll('console.log', 'globalThis.print')
    .replaceAll(/ from '(.+)'/g, (_all, specifier: string) => ` from '${import.meta.resolve(specifier)}'`);
  const [noticeOf = ''] = client === 'fetch' ? [] : (/^function noticeOf.*?^}$/ms.exec(snippets.join('\n')) ?? []);
  const going = `${noticeOf}\n${resolved}\n${READ}\nexport const readPet = (id) => ${READ_PET[client]}; // ${runs++}`;
  const { readPet } = (await import(`data:text/javascript,${encodeURIComponent(going)}`)) as { readPet: ReadPet };
  return readPet;
}

/** Node runs a module of the same text once only. */
let runs = 0;

async function snippetsOf(file: string): Promise<string[]> {
  const markdown = await readFile(new URL(`../../${file}`, import.meta.url), 'utf8');
  return [...markdown.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code = '']) => code);
}
