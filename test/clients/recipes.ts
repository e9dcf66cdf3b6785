import { ApolloProvider } from '@apollo/client/react';
import { gql } from '@apollo/client';
import { createElement } from 'react';
import type { ReactNode } from 'react';
import { create } from 'react-test-renderer';
import { Provider } from 'urql';

/** What a recipe's hook shows of a list. */
export interface Shown {
  readonly pets: readonly { readonly id: string; readonly name: string }[] | undefined;
  readonly notice: string | undefined;
}

/** What a client gives for an operation; errors in the form of the client. */
export interface Given {
  readonly data?: Readonly<Record<string, any>> | null | undefined;
  readonly error?: unknown;
}

/** One recipe of schema/recipes, with its hooks in components. */
export interface Recipe {
  /** Renders a component with the list of a status. */
  readonly showPets: (status: string) => Mounted<Shown>;
  /** Adds a pet by the recipe, and returns what it tells people. */
  readonly addPet: (name: string, idempotencyKey: string) => Promise<string | undefined>;
  readonly query: (document: string, variables?: object) => Promise<Given>;
  readonly mutate: (document: string) => Promise<Given>;
}

export interface Mounted<Of> {
  readonly shown: () => Of | undefined;
  readonly unmount: () => void;
}

type AddPet = (input: object) => Promise<unknown>;
interface Hooks {
  readonly usePets: (status: string) => Shown;
  readonly useAddPet: () => { readonly add: AddPet; readonly notice: string | undefined };
  readonly client: any;
}

/** The modules, which only the TypeScript project of the recipes compiles: Apollo Client's types are declared for all of a project. */
const load = <Module>(name: string) =>
  import(new URL(`../../schema/recipes/${name}.ts`, import.meta.url).href) as Promise<Module>;

export async function loadRecipe(name: ClientName): Promise<Recipe> {
  return RECIPES[name]();
}

const RECIPES = {
  fetch: loadFetch,
  urql: loadUrql,
  'Apollo Client': loadApollo,
} as const;

export type ClientName = keyof typeof RECIPES;
export const CLIENTS = Object.keys(RECIPES) as ClientName[];

async function loadFetch(): Promise<Recipe> {
  interface Fetch {
    readonly read: (operation: object, show: (result: Given) => void, signal: AbortSignal) => Promise<void>;
    readonly send: (operation: object) => Promise<Given>;
  }
  interface FetchHook extends Pick<Hooks, 'usePets'> {
    readonly addPet: (input: object, key: string) => Promise<{ readonly notice: string | undefined }>;
  }
  const [{ read, send }, { usePets, addPet }] = await Promise.all([
    load<Fetch>('fetch'),
    load<FetchHook>('fetch-hook'),
  ]);
  return {
    showPets: (status) => mount(() => usePets(status)),
    addPet: async (name, key) => (await addPet({ name, categoryId: '3' }, key)).notice,
    async query(document, variables = {}) {
      let last: Given = {};
      await read({ query: document, variables }, (result) => (last = result), new AbortController().signal);
      return withError(last);
    },
    mutate: async (document) => withError(await send({ query: document })),
  };
}

/** A plain result has `errors`. */
function withError(result: Given & { readonly errors?: unknown }): Given {
  return { data: result.data, error: result.errors };
}

async function loadUrql(): Promise<Recipe> {
  const { client, usePets, useAddPet } = await load<Hooks>('urql');
  const inProvider = (child: ReactNode) => createElement(Provider, { value: client, children: child });
  return {
    showPets: (status) => mount(() => usePets(status), inProvider),
    addPet: (name, key) => addBy(useAddPet, inProvider, { input: { name, categoryId: '3', idempotencyKey: key } }),
    query: (document, variables = {}) =>
      client.query(document, variables, { requestPolicy: 'network-only' }).toPromise(),
    mutate: (document) => client.mutation(document, {}).toPromise(),
  };
}

async function loadApollo(): Promise<Recipe> {
  const { client, usePets, useAddPet } = await load<Hooks>('apollo');
  const inProvider = (child: ReactNode) => createElement(ApolloProvider, { client, children: child });
  return {
    showPets: (status) => mount(() => usePets(status), inProvider),
    addPet: (name, key) =>
      addBy(useAddPet, inProvider, { variables: { input: { name, categoryId: '3', idempotencyKey: key } } }),
    query: (document, variables = {}) => client.query({ query: gql(document), variables, fetchPolicy: 'network-only' }),
    mutate: (document) => client.mutate({ mutation: gql(document) }),
  };
}

/** Renders a component that uses a hook. */
function mount<Of>(use: () => Of, wrap: (child: ReactNode) => ReactNode = (child) => child): Mounted<Of> {
  // The renderer is for React Native today, and says so otherwise.
  Object.assign(globalThis, { IS_REACT_NATIVE_TEST_ENVIRONMENT: true });
  let shown: Of | undefined;
  const Component = () => {
    shown = use();
    return null;
  };
  const root = create(wrap(createElement(Component)) as React.ReactElement);
  return { shown: () => shown, unmount: () => root.unmount() };
}

/** Submits by the hook of a component, and returns its notice after that. */
async function addBy(
  useAddPet: Hooks['useAddPet'],
  wrap: (child: ReactNode) => ReactNode,
  variables: object,
): Promise<string | undefined> {
  const form = mount(useAddPet, wrap);
  while (!form.shown()) await rendered();
  await form.shown()?.add(variables);
  await rendered();
  const notice = form.shown()?.notice;
  form.unmount();
  return notice;
}

const rendered = () => new Promise((resolve) => void setTimeout(resolve, 5));
