// The program is killed, or told of a failure, at four calls of an update, by the seed.
import { takeSample } from '../../kit/assert/sample.js';

takeSample('exhaustive/kills/kills', 4);
await import('./kills.test.js');
