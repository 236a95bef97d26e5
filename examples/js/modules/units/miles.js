const KM = 1.609344;

export const toMiles = (km) => km / KM;
