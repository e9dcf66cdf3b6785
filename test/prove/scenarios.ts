import type { Scenario } from './scenario.ts';
import { saturation } from './scenarios/saturation.ts';

/** All of them; the longest first, so that the others run beside them. */
export const scenarios: readonly Scenario[] = [...saturation];
