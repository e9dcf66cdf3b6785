import { NEW_PET_FIELD_NAMES } from '../pets/pet.ts';
import { builder } from './builder.ts';

/** A problem that the client can correct. */
export interface UserError {
  readonly code: string;
  readonly message: string;
}

export const userError = builder.objectRef<UserError>('UserError').implement({
  description: 'A problem with the input that the client can correct.',
  fields: (t) => ({
    field: t.stringList({
      nullable: true,
      description:
        'The path of the input field, such as ["input", "name"]; null where the message of the pet API names none, or several.',
      resolve: ({ message }) => fieldIn(message),
    }),
    code: t.exposeString('code', {
      nullable: false,
      description: "The pet API's own code, for programs.",
    }),
    message: t.exposeString('message', { nullable: false, description: 'What is wrong, for people.' }),
  }),
});

/** A status that is a number is that of HTTP. */
const FIELD = new RegExp(`\\b(?:${NEW_PET_FIELD_NAMES.join('|')})\\b(?!\\s*(?:code\\b|[:=]?\\s*\\d))`, 'g');

/** Returns the path of the one input field that a message names. */
function fieldIn(message: string): string[] | null {
  const [name, ...others] = new Set(message.match(FIELD));
  return name === undefined || others.length > 0 ? null : ['input', name];
}
