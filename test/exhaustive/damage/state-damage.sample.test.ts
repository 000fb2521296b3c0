// A few of the harms.
import { takeSample } from '../../kit/assert/sample.js';

takeSample('exhaustive/damage/state-damage', 6);
await import('./state-damage.test.js');
