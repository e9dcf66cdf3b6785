import { builder } from './builder.ts';

export const petStatus = builder.enumType('PetStatus', {
  description: 'Where an animal stands on its way to a new home.',
  values: {
    AVAILABLE: { value: 'available', description: 'Waiting for a home.' },
    PENDING: { value: 'pending', description: 'Its adoption is under way.' },
    SOLD: { value: 'sold', description: 'It has found a home.' },
  } as const,
});
