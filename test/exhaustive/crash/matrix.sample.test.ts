// Every operation has its place in the crash matrix, and some of the faults are tried, by the seed.
import { takeSample } from '../../kit/assert/sample.js';

takeSample('exhaustive/crash/matrix', 40);
await import('./matrix.test.js');
