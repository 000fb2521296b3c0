// Ten wrong clocks of each: publisher, server and host, by the seed.
import { takeSample } from '../../kit/assert/sample.js';

takeSample('exhaustive/clocks/wrong-clocks', 10);
await import('./wrong-clocks.test.js');
