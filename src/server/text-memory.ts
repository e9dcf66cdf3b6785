/** What was written of objects, so that it is not written again. */
export interface TextMemory {
  /** A memory of its own for one way to write them. */
  forSelection(): Texts;
}

export interface Texts {
  find(object: object): string | undefined;
  keep(object: object, text: string): void;
}

/** Some megabytes in all, however many documents there are and whoever's animals they show. */
const MOST_CHARACTERS = 4_000_000;
/** What an entry costs beside its text. */
const ENTRY_CHARACTERS = 100;

/** Forgets a text with the object that it was written of, and all of them when there are too many. */
export function createTextMemory(mostCharacters = MOST_CHARACTERS): TextMemory {
  const inUse: { known: WeakMap<object, string> | undefined }[] = [];
  let characters = 0;

  return {
    forSelection() {
      const texts: (typeof inUse)[number] = { known: undefined };
      return {
        find: (object) => texts.known?.get(object),
        keep(object, text) {
          characters += text.length + ENTRY_CHARACTERS;
          if (characters > mostCharacters) forgetAll();
          if (!texts.known) {
            texts.known = new WeakMap();
            inUse.push(texts);
          }
          texts.known.set(object, text);
        },
      };
    },
  };

  function forgetAll(): void {
    for (const texts of inUse.splice(0)) texts.known = undefined;
    characters = 0;
  }
}
