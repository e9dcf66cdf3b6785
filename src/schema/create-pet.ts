import type { Pet } from '../pet.ts';
import { builder } from './builder.ts';
import { idempotencyKeyArgument } from './idempotency-key-argument.ts';
import { int64Argument } from './int64-argument.ts';
import { petStatus } from './pet-status.ts';
import { pet } from './pet.ts';
import { userError } from './user-error.ts';
import type { UserError } from './user-error.ts';

interface CreatePetPayload {
  readonly pet: Pet | null;
  readonly userErrors: readonly UserError[];
}

const createPetPayload = builder.objectRef<CreatePetPayload>('CreatePetPayload').implement({
  description: 'What came of adding an animal: the animal, or what the service finds wrong with the input.',
  fields: (t) => ({
    pet: t.expose('pet', { type: pet, description: 'The animal with its new id; null when it was not added.' }),
    userErrors: t.expose('userErrors', {
      type: [userError],
      nullable: false,
      description:
        'What the service finds wrong with the input; empty when the animal was added. What petql itself refuses, such as an id ' +
        'that is no int64, is an error with the code BAD_USER_INPUT.',
    }),
  }),
});

const createPetInput = builder.inputType('CreatePetInput', {
  description: 'An animal to add; the service gives it its id.',
  fields: (t) => ({
    name: t.string({ required: true, description: 'Its name.' }),
    categoryId: t.id({ required: true, description: 'The category that it belongs to, an int64.' }),
    status: t.field({ type: petStatus, description: 'Where it stands; without it, the service decides.' }),
    idempotencyKey: t.string({
      description:
        'Makes the creation safe to repeat: a key of your own for this animal, of 1 to 255 visible ASCII characters, such ' +
        'as a UUID. Within a day, whatever is submitted with it again adds nothing and gets the outcome of the first: the ' +
        'animal, the userErrors, or OUTCOME_UNKNOWN. With another input it is BAD_USER_INPUT. After any other error ' +
        'nothing was added, or OUTCOME_PENDING says that an earlier submit is under way: repeat it with the same key.',
    }),
  }),
});

builder.mutationType({
  description: 'What can be changed. Every field writes with the API key of the request.',
  fields: (t) => ({
    createPet: t.field({
      type: createPetPayload,
      description:
        'Adds an animal. An error with the code OUTCOME_UNKNOWN says that it may have been added: look before repeating. With an ' +
        'idempotencyKey it can be repeated without adding a second one.',
      args: { input: t.arg({ type: createPetInput, required: true, description: 'The animal to add.' }) },
      resolve: async (_root, { input }, { pets }): Promise<CreatePetPayload> => {
        const { name, categoryId, status, idempotencyKey } = input;
        const created = await pets.create(
          { name, categoryId: int64Argument('input.categoryId', categoryId), status: status ?? undefined },
          idempotencyKeyArgument('input.idempotencyKey', idempotencyKey),
        );
        if ('pet' in created) return { pet: created.pet, userErrors: [] };
        return { pet: null, userErrors: [{ field: undefined, ...created.refusal }] };
      },
    }),
  }),
});
