// The first set-up of docs/operations.md and one of its runbooks, by the seed.
import { takeSample } from '../../kit/assert/sample.js';

takeSample('exhaustive/operations/operations', 1);
await import('./operations.test.js');
