/** How many calls of the day petql takes for spent, asked over HTTP at no call. */
export async function askDayUsed(endpoint: string, key: string): Promise<number> {
  const response = await fetch(endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ query: '{ rateLimit { windows { window used } } }' }),
  });
  const { data } = (await response.json()) as {
    data: { rateLimit: { windows: readonly { window: string; used: number }[] } };
  };
  const day = data.rateLimit.windows.find(({ window }) => window === 'DAY');
  if (!day) throw new Error('expected a day among the windows');
  return day.used;
}
