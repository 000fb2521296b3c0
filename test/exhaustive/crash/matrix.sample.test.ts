// A sample of the crash matrix: the coverage of every operation, and some faults that the seed chooses.
import { takeSample } from '../../kit/assert/sample.js';

takeSample('exhaustive/crash/matrix', 40);
await import('./matrix.test.js');
