// Removes flushes from one of the cycles, which the seed chooses.
import { takeSample } from '../../kit/assert/sample.js';

takeSample('exhaustive/replay/replay-flushes', 1);
await import('./replay-flushes.test.js');
