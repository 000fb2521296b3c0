// Eighty bent repositories before two clients, by the seed.
import { takeSample } from '../../kit/assert/sample.js';

takeSample('exhaustive/differential/differential', 80);
await import('./differential.test.js');
