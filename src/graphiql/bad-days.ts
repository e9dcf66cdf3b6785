import type { ExampleOperation } from './example-operations.ts';

/** A tab that runs with the demo key of a story. */
export interface BadDay extends ExampleOperation {
  readonly apiKey: string;
}

const NO_CACHE_HEADERS = { 'Cache-Control': 'no-cache' };

/** The tabs behind "bad days", named for what one sees. src/program/sandbox/README.md has the runs that each one takes. */
export const BAD_DAYS: readonly BadDay[] = [
  {
    apiKey: 'demo-used-up',
    query: `# Other programs leave three calls of today.
# Run it twice, two seconds apart: petql saves
# the rest, and says how old the data is.
query SavingQuota {
  pets(limit: 3) { name status }
}
`,
  },
  {
    apiKey: 'demo-used-up',
    headers: NO_CACHE_HEADERS,
    query: `# With no-cache each run costs one of the three
# calls. The fourth run has no data: show when
# to come back, and do not wait for it. To begin
# again, write demo-used-up-2 in Headers.
query RateLimited {
  pets(limit: 3) { name status }
}
`,
  },
  {
    apiKey: 'demo-shared',
    query: `# Other programs leave four calls of the minute.
# Run it five times, two seconds apart: the data
# ages until the next minute.
query QuotaExhausted {
  pets(limit: 3) { name status }
}
`,
  },
  {
    apiKey: 'demo-paused',
    query: `# The second call is a 429. Run it twice, two
# seconds apart: petql calls again after 20 s.
query Paused {
  pets(limit: 3) { name status }
}
`,
  },
  {
    apiKey: 'demo-slow',
    query: `# Each response takes three seconds. Show that
# something is under way, and let people leave.
query Slow {
  pets(limit: 3) { name status }
}
`,
  },
  {
    apiKey: 'demo-flaky',
    query: `# Each third call fails. Run it three times, two
# seconds apart: the third result is stale.
query UpstreamFailed {
  pets(limit: 3) { name status }
}
`,
  },
  {
    apiKey: 'demo-down',
    headers: NO_CACHE_HEADERS,
    query: `# Run it, wait for 15 seconds, and run it again:
# for a minute there is an error. Without the
# header no-cache there is stale data.
query Down {
  pets(limit: 3) { name status }
}
`,
  },
  {
    apiKey: 'demo-lost',
    query: `# The pet is created, and the response is lost.
# Run it again: petql never creates it twice.
# CreatedPets shows whether it is there.
mutation OutcomeUnknown($input: CreatePetInput!) {
  createPet(input: $input) {
    pet { id name }
    userErrors { field code message }
  }
}

query CreatedPets {
  pets(status: PENDING, limit: 100) { id name }
}
`,
    variables: `{
  "input": {
    "name": "Momo",
    "categoryId": "3",
    "status": "PENDING",
    "idempotencyKey": "NEW_KEY"
  }
}`,
  },
  {
    apiKey: 'demo-revoked',
    headers: NO_CACHE_HEADERS,
    query: `# The key is revoked after ten calls, and this
# makes four. In the third run it is rejected.
# To begin again, write demo-revoked-2 in Headers.
query Unauthenticated {
  all: pets(limit: 1) { name }
  available: pets(status: AVAILABLE, limit: 1) { name }
  pending: pets(status: PENDING, limit: 1) { name }
  sold: pets(status: SOLD, limit: 1) { name }
}
`,
  },
  {
    apiKey: 'demo-banned',
    headers: NO_CACHE_HEADERS,
    query: `# The second run meets a 429, waits for five
# seconds, and then meets a ban of a minute.
query Forbidden {
  pets(limit: 3) { name status }
}
`,
  },
];
