// Each recovery is killed at two of its operations, by the seed.
import { takeSample } from '../../kit/assert/sample.js';

takeSample('exhaustive/interrupted/interrupted-recovery', 2);
await import('./interrupted-recovery.test.js');
