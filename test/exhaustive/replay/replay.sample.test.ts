// A power cut in two of the cycles, which the seed chooses.
import { takeSample } from '../../kit/assert/sample.js';

takeSample('exhaustive/replay/replay', 2);
await import('./replay.test.js');
