import { builder } from './builder.ts';

/** Something that the caller can put right and send again. */
export interface UserError {
  readonly field: readonly string[] | undefined;
  readonly code: string;
  readonly message: string;
}

export const userError = builder.objectRef<UserError>('UserError').implement({
  description: 'Something about the input that can be put right and sent again.',
  fields: (t) => ({
    field: t.stringList({
      nullable: true,
      description: 'The path of the input field that it is about; null where the service names none, as it does today.',
      resolve: ({ field }) => (field ? [...field] : null),
    }),
    code: t.exposeString('code', {
      nullable: false,
      description: "What is wrong, for a program: the service's own code.",
    }),
    message: t.exposeString('message', { nullable: false, description: 'What is wrong, for a person.' }),
  }),
});
