import type { NewPet, Pet, WithEachField } from '../pets/pet.ts';
import { idempotencyKeyArgument, int64Argument } from './arguments.ts';
import { builder } from './builder.ts';
import { pet, petStatus } from './pet.ts';
import { userError } from './user-error.ts';
import type { UserError } from './user-error.ts';

interface CreatePetPayload {
  readonly pet: Pet | null;
  readonly userErrors: readonly UserError[];
}

const createPetPayload = builder.objectRef<CreatePetPayload>('CreatePetPayload').implement({
  description: 'The new pet, or what the pet API finds wrong with the input.',
  fields: (t) => ({
    pet: t.expose('pet', { type: pet, description: 'The pet with its new id; null when nothing was added.' }),
    userErrors: t.expose('userErrors', {
      type: [userError],
      nullable: false,
      description:
        'What the pet API finds wrong with the input; empty when the pet was added. Input that petql itself rejects, such as an id ' +
        'that is no int64, is an error with the code BAD_USER_INPUT.',
    }),
  }),
});

const createPetInput = builder.inputType('CreatePetInput', {
  description: 'The pet to add. The pet API assigns its id.',
  fields: (t) => ({
    name: t.string({ required: true, description: 'The name of the pet.' }),
    categoryId: t.id({ required: true, description: 'The category of the pet, an int64.' }),
    status: t.field({ type: petStatus, description: 'The default is up to the pet API.' }),
    idempotencyKey: t.string({
      description:
        'Makes the mutation safe to repeat: 1 to 255 visible ASCII characters, such as a UUID, new for each pet. For a day, the ' +
        'same key adds no second pet and returns the first outcome: the pet, the userErrors, or OUTCOME_UNKNOWN. After ' +
        'userErrors the corrected input may come with the same key; else another input is BAD_USER_INPUT. After ' +
        'OUTCOME_UNKNOWN look for the pet; to create it anyway, take a new key. After OUTCOME_PENDING (an earlier attempt is ' +
        'under way) and after any other error (nothing was added) repeat the mutation with the same key.',
    }),
  }),
});

builder.mutationField('createPet', (t) =>
  t.field({
    type: createPetPayload,
    description:
      'Adds a pet. petql never repeats a write that was sent. The error code OUTCOME_UNKNOWN means that the pet may exist: look ' +
      'for it before you create it again. An idempotencyKey makes it safe to repeat the mutation after other errors.',
    args: { input: t.arg({ type: createPetInput, required: true, description: 'The pet to add.' }) },
    resolve: async (_root, { input }, { pets }): Promise<CreatePetPayload> => {
      const { name, categoryId, status, idempotencyKey } = input;
      const newPet: WithEachField<NewPet> = {
        name,
        categoryId: int64Argument('input.categoryId', categoryId),
        status: status ?? undefined,
      };
      const key = idempotencyKeyArgument('input.idempotencyKey', idempotencyKey);
      const created = await pets.write((writes, request) => writes.create(newPet, key, request));
      if (created && 'refusal' in created) return { pet: null, userErrors: [created.refusal] };
      return { pet: created?.pet ?? null, userErrors: [] };
    },
  }),
);
