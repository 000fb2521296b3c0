// Flushes are left out of one of the cycles, by the seed.
import { takeSample } from '../../kit/assert/sample.js';

takeSample('exhaustive/replay/replay-flushes', 1);
await import('./replay-flushes.test.js');
