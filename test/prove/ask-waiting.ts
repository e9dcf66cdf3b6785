/** How many calls wait for their turn in one replica, asked over HTTP at no call. */
export async function askWaiting(endpoint: string, key: string): Promise<number> {
  const response = await fetch(endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ query: '{ rateLimit { queued } }' }),
  });
  const { data } = (await response.json()) as { data: { rateLimit: { queued: number } } };
  return data.rateLimit.queued;
}
