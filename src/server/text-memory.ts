/** What was written of objects, so that it is not written again. */
export interface TextMemory {
  /** A memory of its own for one way to write them. */
  forSelection<T = string>(): Texts<T>;
}

export interface Texts<T = string> {
  find(object: object): T | undefined;
  /** @param characters how long it is. */
  keep(object: object, text: T, characters: number): void;
}

/** Some megabytes in all, however many documents there are and whoever's animals they show. */
const MOST_CHARACTERS = 4_000_000;
/** What an entry costs beside its text. */
const ENTRY_CHARACTERS = 100;

/** Forgets a text with the object that it was written of, and all of them when there are too many. One that is too long is not kept. */
export function createTextMemory(mostCharacters = MOST_CHARACTERS): TextMemory {
  const inUse: (() => void)[] = [];
  let characters = 0;

  return {
    forSelection<T = string>(): Texts<T> {
      let known: WeakMap<object, T> | undefined;
      const forget = () => {
        known = undefined;
      };
      return {
        find: (object) => known?.get(object),
        keep(object, text, length) {
          const added = length + ENTRY_CHARACTERS;
          if (added > mostCharacters) return;
          if (characters + added > mostCharacters) forgetAll();
          characters += added;
          if (!known) inUse.push(forget);
          known ??= new WeakMap();
          known.set(object, text);
        },
      };
    },
  };

  function forgetAll(): void {
    for (const forget of inUse.splice(0)) forget();
    characters = 0;
  }
}
