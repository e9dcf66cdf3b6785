import type { FieldNode, SelectionSetNode } from 'graphql';
import { setsBelow } from './fields-at.ts';
import type { CollectFields, FieldsAt } from './fields-at.ts';

/** What validation compares of a definition. */
export interface Compared {
  /** How often the field that stands most often at one place of the answer is asked for there. */
  readonly repeats: number;
  /**
   * How much it is in all: at each place validation compares each field with each other of the same name, and each fragment with
   * each other. What was counted of another definition does not count again.
   */
  readonly comparisons: number;
}

/** Fields with arguments, directives or selections are compared by these too. Measured; a pair of others is one. */
const PAIR_OF_FIELDS = 10;
const PAIR_OF_FRAGMENTS = 3;

/**
 * Counts for one definition of a document after the other.
 *
 * @param most fields are looked at; only fragments of themselves have more, and validation refuses them for that.
 */
export function createComparisons(fieldsAt: CollectFields, most: number): (root: SelectionSetNode) => Compared {
  const counted = new Set<FieldsAt>();
  return (root) => {
    let repeats = 0;
    let comparisons = 0;
    let looked = 0;
    const open: SelectionSetNode[][] = [[root]];
    for (let sets = open.pop(); sets && looked <= most; sets = open.pop()) {
      const place = fieldsAt(sets);
      if (counted.has(place)) continue;
      counted.add(place);
      comparisons += pairsOf(place.spreads) * PAIR_OF_FRAGMENTS;
      for (const fields of place.values()) {
        looked += fields.length;
        repeats = Math.max(repeats, fields.length);
        comparisons += pairsOf(fields.length) * (fields.every(isPlain) ? 1 : PAIR_OF_FIELDS);
        const lower = setsBelow(fields);
        if (lower.length > 0) open.push(lower);
      }
    }
    return { repeats, comparisons };
  };
}

function pairsOf(count: number): number {
  return (count * (count - 1)) / 2;
}

function isPlain({ arguments: given = [], directives = [], selectionSet }: FieldNode): boolean {
  return given.length === 0 && directives.length === 0 && !selectionSet;
}
