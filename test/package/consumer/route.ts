import { createGateway } from 'petql';

export const gateway = createGateway({ petApiUrl: process.env['PET_API_URL'] ?? '' });
export const POST = gateway.fetch;
