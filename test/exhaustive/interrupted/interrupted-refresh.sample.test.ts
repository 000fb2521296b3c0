// Each refresh is killed at two of its moments, and fails at two of its operations, by the seed.
import { takeSample } from '../../kit/assert/sample.js';

takeSample('exhaustive/interrupted/interrupted-refresh', 2);
await import('./interrupted-refresh.test.js');
