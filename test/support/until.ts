/** Waits until something holds; the test's own timeout ends it otherwise. */
export async function until(holds: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await holds())) {
    await new Promise((resolve) => {
      setTimeout(resolve, 5);
    });
  }
}
