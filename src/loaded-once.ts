/**
 * Loads a thing once, for all who ask for it. A load that failed, for want of a file descriptor say, is begun anew for whoever
 * asks next; to those who waited for it its promise rejects as the load did.
 */
export function loadedOnce<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined;
  return () => {
    loading ??= load().catch((fault: unknown) => {
      loading = undefined;
      throw fault;
    });
    return loading;
  };
}
