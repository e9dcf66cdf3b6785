import type { Pet } from '../pet.ts';
import { builder } from './builder.ts';
import { petStatus } from './pet-status.ts';

export const pet = builder.objectRef<Pet>('Pet').implement({
  description: 'An animal of the pet adoption service.',
  fields: (t) => ({
    id: t.exposeID('id', {
      nullable: false,
      description: 'Its identifier, an int64 as a string of digits, so that no client rounds it.',
    }),
    name: t.exposeString('name', { nullable: false, description: 'Its name.' }),
    categoryId: t.exposeID('categoryId', {
      nullable: false,
      description: 'The category that it belongs to, an int64 as a string of digits.',
    }),
    status: t.expose('status', {
      type: petStatus,
      description: 'Where it stands; null when the service does not say. Such an animal is in no filtered list.',
    }),
  }),
});
