import { registerHooks } from 'node:module';

/** Loaded first (`--import`), it gives a process graphql 16 in place of graphql 17. */
registerHooks({
  resolve(name, context, next) {
    return next(
      name === 'graphql' || name.startsWith('graphql/') ? name.replace('graphql', 'graphql-16') : name,
      context,
    );
  },
});
