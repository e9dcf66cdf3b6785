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
      description: 'The path of the input field; null when the pet API names none, as today.',
      resolve: () => null,
    }),
    code: t.exposeString('code', {
      nullable: false,
      description: "The pet API's own code, for programs.",
    }),
    message: t.exposeString('message', { nullable: false, description: 'What is wrong, for people.' }),
  }),
});
