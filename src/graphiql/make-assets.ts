/** A part of the image's build: makes GraphiQL's compressed files, so that no visit does. */
import { loadAssets } from './assets.ts';

await loadAssets();
