import type { EachField, Pet } from '../pets/pet.ts';
import { builder } from './builder.ts';

export const petStatus = builder.enumType('PetStatus', {
  description: 'How far a pet is on its way to a new home.',
  values: {
    AVAILABLE: { value: 'available', description: 'Waiting for a home.' },
    PENDING: { value: 'pending', description: 'Its adoption is under way.' },
    SOLD: { value: 'sold', description: 'It has found a home.' },
  } as const,
});

export const pet = builder.objectRef<Pet>('Pet').implement({
  description: 'A pet of the pet API.',
  fields: (t) =>
    ({
      id: t.exposeID('id', {
        nullable: false,
        description: 'An int64 as a string of digits, so that no client rounds it.',
      }),
      name: t.exposeString('name', { nullable: false, description: 'The name of the pet.' }),
      categoryId: t.exposeID('categoryId', {
        nullable: false,
        description: 'The category of the pet, an int64 as a string of digits.',
      }),
      status: t.expose('status', {
        type: petStatus,
        description:
          'Null when the pet API gives none, or one that petql does not know. Such a pet is in no list with a status filter.',
      }),
    }) satisfies EachField<unknown>,
});
