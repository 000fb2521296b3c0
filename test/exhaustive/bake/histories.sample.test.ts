// Some histories, by the seed.
import { takeSample } from '../../kit/assert/sample.js';

takeSample('exhaustive/bake/histories', 3);
await import('./histories.test.js');
