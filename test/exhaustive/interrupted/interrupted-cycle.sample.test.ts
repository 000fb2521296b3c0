// A cycle that is killed at some of its operations, by the seed.
import { takeSample } from '../../kit/assert/sample.js';

takeSample('exhaustive/interrupted/interrupted-cycle', 8);
await import('./interrupted-cycle.test.js');
