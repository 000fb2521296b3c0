// The first set-up of docs/operations.md and two of its runbooks, by the seed.
import { takeSample } from '../../kit/assert/sample.js';

takeSample('exhaustive/operations/operations', 2);
await import('./operations.test.js');
