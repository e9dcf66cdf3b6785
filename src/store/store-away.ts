/** What is kept cannot be reached, or not be written, for now; whether a change was made all the same is not known. */
export class StoreAway extends Error {
  override readonly name: string = 'StoreAway';
}
